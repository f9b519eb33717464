// Unreal generates this file.
