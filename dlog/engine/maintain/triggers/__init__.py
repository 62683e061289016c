"""The short path of small transactions: triggers, how they are found, and what follows from firing one."""
