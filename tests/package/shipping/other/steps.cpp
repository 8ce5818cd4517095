// tests/package/shipping/other/steps.cpp: a second file of this name.
int thrice(int x) { return 3 * x; }
