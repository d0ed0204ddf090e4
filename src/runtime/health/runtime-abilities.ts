import type { StatusResponse } from '../../cri/index.ts';
import type { HandlerFeatures } from '../sandbox/runtime-classes.ts';

/** What the runtime says it can do. An old one says nothing, which counts as unable. */
export interface RuntimeAbilities {
  /** By name; the runtime's own choice has the empty one. None when it does not tell. */
  readonly handlers: ReadonlyMap<string, HandlerFeatures>;
  /** Whether containers can have just the groups their pod names. */
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
