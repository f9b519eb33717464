// What the guide's code uses of Unreal, with its types: enough to compile and run it.
#pragma once
#include <cstdio>

using int64 = long long;

#define UCLASS(...)
#define UFUNCTION(...)
#define GENERATED_BODY() using Super = UGameInstanceSubsystem;
#define THIRD_PARTY_INCLUDES_START
#define THIRD_PARTY_INCLUDES_END
#define TEXT(text) text
// Unreal's log is not printf: %hs is its name for a char string.
#define UE_LOG(category, level, format, what) std::fprintf(stderr, "%s\n", what)
// A macro of Unreal's that a header which is not careful trips over.
#define check(condition) static_cast<void>(condition)
