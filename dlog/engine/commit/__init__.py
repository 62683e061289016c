"""What a commit reports: net changes, results of predicates, subscribers, facts as text."""
