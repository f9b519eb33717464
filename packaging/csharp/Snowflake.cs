// The C# binding of frazil, in C# 7.3: for .NET, Mono and Unity. It converts; the C library decides.
using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;
using System.Text;

namespace Frazil
{
    /// <summary>An error of frazil.</summary>
    public sealed class FrazilException : Exception
    {
        internal FrazilException(int code, string message) : base(message) { Code = code; }

        /// <summary>The number of the error, as in frazil.h: 204 is FRAZIL_EXHAUSTED.</summary>
        public int Code { get; }
    }

    /// <summary>The parts of an ID.</summary>
    [StructLayout(LayoutKind.Sequential)]
    public struct Parts
    {
        /// <summary>The ID that was taken apart.</summary>
        public long Id;
        /// <summary>The instant at which the ID's tick starts, in Unix milliseconds.</summary>
        public long UnixMs;
        /// <summary>The raw time field: ticks since the layout's epoch.</summary>
        public ulong Tick;
        /// <summary>The node number: all node fields side by side.</summary>
        public ulong Node;
        /// <summary>The counter within the tick.</summary>
        public ulong Sequence;
        /// <summary>True if the decimal text looks like an ID that JavaScript has rounded. A hint, not a proof.</summary>
        [MarshalAs(UnmanagedType.U1)] public bool LooksRounded;
    }

    /// <summary>A generator of IDs. Any number of threads may use it at once.</summary>
    public sealed class Snowflake : SafeHandle
    {
        Snowflake(IntPtr ids) : base(IntPtr.Zero, true) { SetHandle(ids); }

        /// <summary>Opens a generator, for example "game server=4711".</summary>
        /// <param name="spec">The spec line; null reads the environment variable FRAZIL.</param>
        /// <exception cref="FrazilException">The line is wrong, or its store gives no number.</exception>
        public static Snowflake Open(string spec)
        {
            Check(frazil_snowflake_open(spec == null ? null : Encoding.UTF8.GetBytes(spec + "\0"), out var ids));
            return new Snowflake(ids);
        }

        /// <summary>Returns the next ID.</summary>
        /// <exception cref="FrazilException">No ID came in time.</exception>
        public long Next()
        {
            Check(frazil_snowflake_next(this, out var id));
            return id;
        }

        /// <summary>Fills the whole array with IDs, and allocates nothing.</summary>
        /// <exception cref="FrazilException">The IDs did not come in time.</exception>
        public void Fill(long[] ids)
        {
            Check(frazil_snowflake_fill(this, ids, (UIntPtr)ids.Length, IntPtr.Zero));
        }

        /// <summary>Takes apart an ID of this generator's layout.</summary>
        /// <exception cref="FrazilException">The number is not an ID of the layout.</exception>
        public Parts Decode(long id)
        {
            Check(frazil_snowflake_layout(this, out var layout));
            try
            {
                Check(frazil_layout_decode(layout, id, out var parts, (UIntPtr)Marshal.SizeOf(typeof(Parts))));
                return parts;
            }
            finally { frazil_layout_free(layout); }
        }

        /// <inheritdoc/>
        public override bool IsInvalid { get { return handle == IntPtr.Zero; } }

        /// <inheritdoc/>
        protected override bool ReleaseHandle()
        {
            frazil_snowflake_free(handle);
            return true;
        }

        static void Check(int status)
        {
            if (status != 0) throw new FrazilException(status, LastError());
        }

        static string LastError()
        {
            var bytes = new List<byte>();
            var text = frazil_last_error();
            for (byte next; (next = Marshal.ReadByte(text, bytes.Count)) != 0;) bytes.Add(next);
            return Encoding.UTF8.GetString(bytes.ToArray());
        }

        // iOS links the static library into the program. IL2CPP compiles these calls without an attribute, which it needs
        // only if native code calls back.
#if UNITY_IOS && !UNITY_EDITOR
        const string Library = "__Internal";
#else
        const string Library = "frazil";
#endif
        const CallingConvention C = CallingConvention.Cdecl;
        [DllImport(Library, CallingConvention = C)]
        static extern int frazil_snowflake_open(byte[] spec, out IntPtr ids);
        [DllImport(Library, CallingConvention = C)]
        static extern int frazil_snowflake_next(Snowflake ids, out long id);
        [DllImport(Library, CallingConvention = C)]
        static extern int frazil_snowflake_fill(Snowflake ids, [Out] long[] buffer, UIntPtr count, IntPtr written);
        [DllImport(Library, CallingConvention = C)]
        static extern int frazil_snowflake_layout(Snowflake ids, out IntPtr layout);
        [DllImport(Library, CallingConvention = C)]
        static extern int frazil_layout_decode(IntPtr layout, long id, out Parts parts, UIntPtr size);
        [DllImport(Library, CallingConvention = C)]
        static extern void frazil_layout_free(IntPtr layout);
        [DllImport(Library, CallingConvention = C)]
        static extern void frazil_snowflake_free(IntPtr ids);
        [DllImport(Library, CallingConvention = C)]
        static extern IntPtr frazil_last_error();
    }
}
