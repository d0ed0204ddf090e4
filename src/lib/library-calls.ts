/** How a function of the C library is called. */
export interface LibraryCall {
  readonly arguments: readonly string[];
  readonly return: string;
}

type LibraryFunctions<Name extends string> = {
  readonly [name in Name]?: (...values: readonly unknown[]) => number;
};

/** Node's way to functions of the C library; not every Node has it. */
interface ForeignFunctions {
  dlopen<Name extends string>(
    library: string,
    calls: Readonly<Record<Name, LibraryCall>>,
  ): { readonly functions: LibraryFunctions<Name> };
}

/** Functions of the C library, as far as this Node can call them and this library has them: all, or none. */
export function libraryCalls<Name extends string>(
  calls: Readonly<Record<Name, LibraryCall>>,
): LibraryFunctions<Name> {
  try {
    const foreign = process.getBuiltinModule('node:ffi') as ForeignFunctions | undefined;
    return foreign?.dlopen('libc.so.6', calls).functions ?? {};
  } catch {
    return {};
  }
}
