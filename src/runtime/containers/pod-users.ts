import type { UserNamespace } from '../../cri/index.ts';
import { KubelingError } from '../../lib/index.ts';
import type { Pod, PodUid } from '../../pods/index.ts';
import type { MessageInit } from '../../protocols/protobuf/index.ts';
import type { HandlerAbilities } from '../sandbox/runtime-classes.ts';

export interface PodUsersDeps {
  /** Those the runtime tells of, by name; none for a runtime that does not tell. */
  readonly handlers: () => ReadonlyMap<string, HandlerAbilities>;
  readonly namespaces: { of(uid: PodUid): Promise<MessageInit<UserNamespace>> };
}

/**
 * Whose users the pod has: the machine's, unless it asks for its own. Throws SANDBOX_CONFIG when it cannot have them:
 * an old runtime ignores the wish, and the pod would be root of the machine where it asked not to be.
 */
export async function podUsers(
  { spec, metadata }: Pod,
  handler: string,
  { handlers, namespaces }: PodUsersDeps,
): Promise<MessageInit<UserNamespace>> {
  if (spec.hostUsers !== false) return { mode: 'NODE' };
  const known = handlers();
  if (known.get(handler)?.userNamespaces === true) return await namespaces.of(metadata.uid);
  const who = handler === '' ? 'runtime' : `RuntimeClass handler "${handler}"`;
  const more = known.size > 0 && !known.has(handler) ? `: the handler "${handler}" is not known` : '';
  throw new KubelingError(
    'SANDBOX_CONFIG',
    `can't set \`spec.hostUsers: false\`, ${who} does not support user namespaces${more}`,
  );
}
