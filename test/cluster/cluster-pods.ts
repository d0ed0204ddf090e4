import { busyboxImageName } from '../../src/containerd/index.ts';
import type { Pod } from '../../src/kinds/index.ts';
import type { ControlPlane } from './control-plane.ts';
import { patiently } from './patiently.ts';

/** Ends at once when told to; costs nothing meanwhile. */
const stays = 'trap "exit 0" TERM; sleep 100000 & wait';

/** A container of an image that the node has, which stays unless told otherwise. */
export function container(name: string, fields: object = {}): object {
  return { name, image: busyboxImageName, command: ['sh', '-c', stays], ...fields };
}

/** Without a token of its service account, so that it needs no volume. */
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

/** Waits for a pod of the API that is as wanted; `told` adds to what is shown when it was in vain. */
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

/** Waits until the API knows no such pod any more. */
export async function podIsGone(plane: ControlPlane, name: string): Promise<void> {
  await patiently(`the pod ${name} to be gone`, async () =>
    (await plane.get(podPath(name))) === undefined ? true : undefined,
  );
}

/** Deletes pods in order and waits until the API knows them no more; without a kubectl. */
export async function removePods(plane: ControlPlane, ...names: readonly string[]): Promise<void> {
  for (const name of names) {
    const { status, body } = await plane.send(podPath(name), { method: 'DELETE' });
    if (status >= 300) throw new Error(`Cannot delete the pod ${name}: ${status} ${body}`);
  }
  for (const name of names) await podIsGone(plane, name);
}
