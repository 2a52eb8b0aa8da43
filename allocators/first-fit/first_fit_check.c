/* SPDX-License-Identifier: 0BSD */
#include "first_fit.h"
#include "list_fit_check.h"

int first_fit_check(void)
{
    return list_fit_check(&first_fit_control);
}
