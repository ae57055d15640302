#pragma once
#include "../common/instance.h"
#include "../common/dot.h"
#include "../common/requantise.h"
#include "../common/epilogue.h"
#include "../common/plane.h"
#include "../common/epilogue_thumb.h"
#include "../common/plane_taps.h"
#include "../common/planes.h"
/* Depthwise convolutions of 3x3 by planes, tap by tap, for Thumb-1. */
