// The part of Unreal's build tool that Frazil.Build.cs uses.
using System.Collections.Generic;

namespace UnrealBuildTool
{
    public enum UnrealTargetPlatform { Win64, Mac, Linux, LinuxArm64 }

    public class ReadOnlyTargetRules { public UnrealTargetPlatform Platform = UnrealTargetPlatform.Linux; }

    public class RuntimeDependencyList
    {
        public List<string> Sources = new List<string>();

        public void Add(string path, string from) { Sources.Add(from); }
    }

    public class ModuleRules
    {
        public enum ModuleType { CPlusPlus, External }

        public ModuleType Type;
        public string ModuleDirectory = "";
        public List<string> PublicSystemIncludePaths = new List<string>();
        public List<string> PublicAdditionalLibraries = new List<string>();
        public RuntimeDependencyList RuntimeDependencies = new RuntimeDependencyList();

        public ModuleRules(ReadOnlyTargetRules target) { }
    }
}
