"""The delta strategy: joins that start at the changed rows give the change of a body."""
