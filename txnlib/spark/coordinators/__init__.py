"""The coordinators' side: the state of each transactional id."""
