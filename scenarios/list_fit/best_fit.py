"""Best-fit's scenarios: those of a single list, where freed blocks join at its end and the best fit is taken."""

from wcet_probe.scenarios.list_fit.states import ListFit

FAMILY = ListFit(control="best_fit_control", last_in_first_out=False, takes_best=True).family()
