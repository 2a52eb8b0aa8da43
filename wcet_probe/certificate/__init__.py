"""The checker of certificates: exact arithmetic, without solver and without analyzer."""
