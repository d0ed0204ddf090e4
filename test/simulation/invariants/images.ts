import type { CreateContainerRequest } from '../../../src/cri/index.ts';
import type { Rule, Scene } from './scene.ts';

/**
 * Image garbage collection must not remove an image while a container of it is about to be created.
 */
export function imagesStayForContainers({ runtime, report, isUncertain }: Scene): Rule {
  const removed = new Set<string>();
  return {
    entry(entry) {
      if (entry.kind === 'image-removed') removed.add(entry.reference);
    },
    runtimeLost: () => removed.clear(),
    calling(method, request) {
      if (method !== 'createContainer' || isUncertain()) return;
      const { config } = request as CreateContainerRequest;
      const image = config?.image?.image ?? '';
      if (removed.has(image) && !runtime.hasImage(image))
        report(
          'no image is removed before a container is made of it',
          `${config?.metadata?.name} of ${image}`,
        );
    },
  };
}
