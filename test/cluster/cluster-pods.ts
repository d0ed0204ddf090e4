import { busyboxImageName } from '../../src/containerd/index.ts';
import type { Pod } from '../../src/kinds/index.ts';
import type { ControlPlane } from './control-plane.ts';
import { patiently } from './patiently.ts';

/** A script that exits immediately on SIGTERM and uses no CPU. */
const stays = 'trap "exit 0" TERM; sleep 100000 & wait';

/**
 * Builds a container with an image that the node has; it runs until stopped unless `fields` changes
 * the command.
 */
export function container(name: string, fields: object = {}): object {
  return { name, image: busyboxImageName, command: ['sh', '-c', stays], ...fields };
}

/** Builds a pod spec without a service account token, so that it needs no volume. */
export function podSpec(containers: readonly object[], fields: object = {}): object {
  return { automountServiceAccountToken: false, terminationGracePeriodSeconds: 2, containers, ...fields };
}

export function pod(name: string, spec: object = podSpec([container('main')])): object {
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'default' }, spec };
}

export function podPath(name: string): string {
  return `/api/v1/namespaces/default/pods/${name}`;
}

export function isReady({ status }: Pod): boolean {
  const condition = status?.conditions?.find(({ type }) => type === 'Ready');
  return condition?.status === 'True';
}

/** Waits until a pod of the API meets the condition; `told` adds details to the timeout error. */
export function podIs(
  plane: ControlPlane,
  name: string,
  what: string,
  wanted: (pod: Pod) => boolean,
  told: () => string = () => '',
): Promise<Pod> {
  let last: Pod | undefined;
  return patiently(
    `the pod ${name} to be ${what}`,
    async () => {
      last = await plane.get<Pod>(podPath(name));
      return last !== undefined && wanted(last) ? last : undefined;
    },
    () => `${JSON.stringify(last?.status, undefined, 1)}\n${told()}`,
  );
}

/** Waits until the API has no pod of this name. */
export async function podIsGone(plane: ControlPlane, name: string): Promise<void> {
  await patiently(`the pod ${name} to be gone`, async () =>
    (await plane.get(podPath(name))) === undefined ? true : undefined,
  );
}

/** Deletes pods gracefully and waits until the API has removed them; does not use kubectl. */
export async function removePods(plane: ControlPlane, ...names: readonly string[]): Promise<void> {
  for (const name of names) {
    const { status, body } = await plane.send(podPath(name), { method: 'DELETE' });
    if (status >= 300) throw new Error(`Cannot delete the pod ${name}: ${status} ${body}`);
  }
  for (const name of names) await podIsGone(plane, name);
}
