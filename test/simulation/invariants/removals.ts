import type { RemoveContainerRequest } from '../../../src/cri/index.ts';
import type { Rule, Scene } from './scene.ts';

/**
 * The kubelet must not remove a container that is already being removed, because runtimes reject
 * this and the kubelet would report an unfounded failure.
 */
export function removesOnce({ runtime, report, isUncertain }: Scene): Rule {
  return {
    calling(method, request) {
      if (method !== 'removeContainer' || isUncertain()) return;
      const { containerId } = request as RemoveContainerRequest;
      const found = runtime.containers().find(({ id }) => id === containerId);
      if (found?.removing !== true) return;
      report(
        'what is being removed is not removed again',
        `${found.name} #${found.attempt} of ${found.podUid}`,
      );
    },
  };
}
