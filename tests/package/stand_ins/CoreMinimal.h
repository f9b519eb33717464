// The part of Unreal that the guide's code needs to compile and run.
#pragma once
#include <cstdio>

using int64 = long long;

#define UCLASS(...)
#define UFUNCTION(...)
#define GENERATED_BODY() using Super = UGameInstanceSubsystem;
#define THIRD_PARTY_INCLUDES_START
#define THIRD_PARTY_INCLUDES_END
#define TEXT(text) text
// Unreal's log is not printf: it writes a char string by %hs.
#define UE_LOG(category, level, format, what) std::fprintf(stderr, "%s\n", what)
// Unreal defines this macro, which breaks careless headers.
#define check(condition) static_cast<void>(condition)
