import type { StatusResponse } from '../../cri/index.ts';
import type { HandlerFeatures } from '../sandbox/runtime-classes.ts';

/** Features reported by the runtime. Older runtimes report none, which counts as unsupported. */
export interface RuntimeAbilities {
  /**
   * The runtime handlers by name; the default handler has the empty name. Empty when the runtime
   * reports none.
   */
  readonly handlers: ReadonlyMap<string, HandlerFeatures>;
  /** Whether the runtime supports supplementalGroupsPolicy. */
  readonly strictGroups: boolean;
}

export const noAbilities: RuntimeAbilities = { handlers: new Map(), strictGroups: false };

export function readAbilities({ runtimeHandlers, features }: StatusResponse): RuntimeAbilities {
  return {
    handlers: new Map(
      runtimeHandlers.map(({ name, features: can }) => [
        name,
        {
          userNamespaces: can?.userNamespaces ?? false,
          recursiveReadOnly: can?.recursiveReadOnlyMounts ?? false,
        },
      ]),
    ),
    strictGroups: features?.supplementalGroupsPolicy ?? false,
  };
}
