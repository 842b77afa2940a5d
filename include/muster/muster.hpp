// SPDX-License-Identifier: Apache-2.0
//
// muster - everything that a C++ program needs to run trials. docs/library.md begins with one.

#pragma once

#include "muster/cli_main.hpp"
#include "muster/config.hpp"
#include "muster/error.hpp"
#include "muster/experiment.hpp"
#include "muster/resource_request.hpp"
#include "muster/resources.hpp"
#include "muster/result.hpp"
#include "muster/result_grid.hpp"
#include "muster/search_space.hpp"
#include "muster/session.hpp"
#include "muster/space.hpp"
#include "muster/trainable.hpp"
#include "muster/trial.hpp"
#include "muster/trial_context.hpp"
#include "muster/tuner.hpp"
#include "muster/value.hpp"
