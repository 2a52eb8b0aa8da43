"""First-fit's scenarios: those of a single list, where freed blocks join at its start and the first fit is taken."""

from wcet_probe.scenarios.list_fit.states import ListFit

FAMILY = ListFit(control="first_fit_control", last_in_first_out=True, takes_best=False).family()
