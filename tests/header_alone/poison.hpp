// tests/header_alone/poison.hpp: names that other people's headers define as macros; using one of them is an error.
// Single letters are not among them: they are the library's template parameters.

#define SINTER_POISON @

// <termios.h>, <sys/sysmacros.h>, <sys/param.h>, predefined in gnu++ modes
#define B0 SINTER_POISON
#define ECHO SINTER_POISON
#define major SINTER_POISON
#define minor SINTER_POISON
#define unix SINTER_POISON
#define linux SINTER_POISON
#define howmany SINTER_POISON
// <math.h> of older systems, curses
#define DOMAIN SINTER_POISON
#define SING SINTER_POISON
#define OVERFLOW SINTER_POISON
#define UNDERFLOW SINTER_POISON
#define HUGE SINTER_POISON
#define OK SINTER_POISON
#define ERR SINTER_POISON
// Apple's AssertMacros.h
#define check SINTER_POISON
#define verify SINTER_POISON
// Windows
#define small SINTER_POISON
#define near SINTER_POISON
#define far SINTER_POISON
#define interface SINTER_POISON
#define IN SINTER_POISON
#define OUT SINTER_POISON
#define ERROR SINTER_POISON
#define CONST SINTER_POISON
#define VOID SINTER_POISON
#define TEXT SINTER_POISON
#define OPTIONAL SINTER_POISON
// X11
#define None SINTER_POISON
#define Bool SINTER_POISON
#define Status SINTER_POISON
#define Success SINTER_POISON
#define Always SINTER_POISON
#define Complex SINTER_POISON
#define True SINTER_POISON
#define False SINTER_POISON
// Qt
#define slots SINTER_POISON
#define signals SINTER_POISON
#define emit SINTER_POISON
#define foreach SINTER_POISON
#define forever SINTER_POISON
// glog, gtest, Catch2, PyTorch
#define CHECK SINTER_POISON
#define REQUIRE SINTER_POISON
#define SECTION SINTER_POISON
#define TEST SINTER_POISON
#define LOG SINTER_POISON
#define INFO SINTER_POISON
#define WARN SINTER_POISON
#define ASSERT SINTER_POISON
#define DEBUG SINTER_POISON
// Arduino, game code
#define PI SINTER_POISON
#define sq SINTER_POISON
#define radians SINTER_POISON
#define degrees SINTER_POISON
