#pragma once

class FSubsystemCollectionBase {};

class UGameInstanceSubsystem {
public:
    virtual ~UGameInstanceSubsystem() = default;
    virtual void Initialize(FSubsystemCollectionBase &) {}
};
