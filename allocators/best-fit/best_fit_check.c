/* SPDX-License-Identifier: 0BSD */
#include "best_fit.h"
#include "list_fit_check.h"

int best_fit_check(void)
{
    return list_fit_check(&best_fit_control);
}
