"""Head maintenance: from changes of a body's assignments to changes of a head's rows.  Knows no rules."""
