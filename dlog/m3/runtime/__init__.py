"""The runtime of M3: maps in kernels, statements compiled to operations on columns, streams and results.

| module | owns |
| --- | --- |
| `layout` | where the words of maps, frames and instructions lie |
| `map_kernels`, `maps` | maps: hash tables with chains for partly bound keys, their growth and memory |
| `arithmetic_kernels`, `column_kernels`, `chain_kernels` | operations on columns, and between them and maps |
| `event_kernels` | which rows a trigger takes together |
| `instructions`, `machine`, `row_machine` | the kernel that runs compiled triggers, on columns or rows |
| `code`, `values`, `rows`, `scalars`, `joins`, `bodies` | from expressions to instructions |
| `statements`, `row_code`, `compiler` | from triggers and programs to instructions |
| `runtime` | a running program: batches in, results out |
| `streams`, `results` | files to batches; results to tables, CSV and JSON |
"""
