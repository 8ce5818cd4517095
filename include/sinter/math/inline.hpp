// sinter/math/inline.hpp: the qualifiers of every word, SINTER_INLINE and SINTER_WORD.
#pragma once

#include "sinter/config.hpp"
