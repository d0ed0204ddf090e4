import type { Container } from '../../kinds/index.ts';
import { KubelingError } from '../../lib/index.ts';
import { describePod, type Pod } from '../../pods/index.ts';
import type { ImageUser } from './security-context.ts';

const largestUid = 2_147_483_647n;

/** Refuses a container that must not run as root but would, or of which that cannot be told. */
export function verifyNonRoot(pod: Pod, container: Container, image: ImageUser): void {
  const own = container.securityContext;
  const whole = pod.spec.securityContext;
  if ((own?.runAsNonRoot ?? whole?.runAsNonRoot) !== true) return;
  const problem = breach(own?.runAsUser ?? whole?.runAsUser, image);
  if (problem === undefined) return;
  const { says, advice = '' } = problem;
  const where = `(pod: "${describePod(pod)}", container: ${container.name})`;
  throw new KubelingError('CONTAINER_CONFIG', `${says} ${where}${advice}`);
}

function breach(
  asked: number | undefined,
  image: ImageUser,
): { readonly says: string; readonly advice?: string } | undefined {
  if (asked !== undefined) {
    return asked === 0 ? { says: "container's runAsUser breaks non-root policy" } : undefined;
  }
  if (image.kind === 'name') {
    return {
      says: `container has runAsNonRoot and image has non-numeric user (${image.name}), cannot verify user is non-root`,
      advice: `: set securityContext.runAsUser to the number of user ${image.name}`,
    };
  }
  if (image.uid === 0n) return { says: 'container has runAsNonRoot and image will run as root' };
  if (image.uid > 0n && image.uid <= largestUid) return undefined;
  return {
    says: `container has runAsNonRoot and image has an invalid user id (${image.uid}). (Must be 1-(${largestUid}))`,
  };
}
