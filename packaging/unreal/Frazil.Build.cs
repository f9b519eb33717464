// An external module. packaging/engines.sh writes it, with the libraries in one folder per platform.
using System.IO;
using UnrealBuildTool;

public class Frazil : ModuleRules
{
    public Frazil(ReadOnlyTargetRules Target) : base(Target)
    {
        Type = ModuleType.External;
        PublicSystemIncludePaths.Add(Path.Combine(ModuleDirectory, "include"));
        string Libraries = Path.Combine(ModuleDirectory, "lib", Target.Platform.ToString());
        if (Target.Platform == UnrealTargetPlatform.Win64)
        {
            Add(Libraries, "frazil.dll.lib", "frazil.dll");
        }
        else if (Target.Platform == UnrealTargetPlatform.Mac)
        {
            Add(Libraries, "libfrazil.dylib", "libfrazil.@ABI@.dylib");
        }
        else
        {
            Add(Libraries, "libfrazil.so", "libfrazil.so.@ABI@");
        }
    }

    private void Add(string Libraries, string Linked, string Loaded)
    {
        PublicAdditionalLibraries.Add(Path.Combine(Libraries, Linked));
        RuntimeDependencies.Add("$(TargetOutputDir)/" + Loaded, Path.Combine(Libraries, Loaded));
    }
}
