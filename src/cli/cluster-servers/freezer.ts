import type { CriClient } from '../../cri/index.ts';
import { KubelingError } from '../../lib/index.ts';
import type { RuntimePod } from '../../pods/index.ts';
import type { Freezer } from '../../server/remote/index.ts';

export interface FreezerDeps {
  readonly cri: Pick<CriClient, 'checkpointContainer'>;
  readonly running: { get(signal: AbortSignal): Promise<readonly RuntimePod[]> };
}

/** Asks the runtime to freeze the instance of a container that runs now. */
export function runtimeFreezer({ cri, running }: FreezerDeps): Freezer {
  return {
    async freeze(pod, container, location, timeoutSeconds, signal) {
      const found = (await running.get(signal)).find(({ uid }) => uid === pod.metadata.uid);
      const instance = found?.containers.find(({ name }) => name === container);
      if (instance === undefined) {
        throw new KubelingError(
          'CRI_NOT_FOUND',
          `Cannot freeze the container ${container} as it does not run`,
        );
      }
      const timeout = BigInt(timeoutSeconds ?? 0);
      await cri.checkpointContainer({ containerId: instance.id, location, timeout }, signal);
    },
  };
}
