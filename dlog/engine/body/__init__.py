"""Evaluation of rule bodies: joins, sub-joins, filters, and the tables of bindings between stages."""
