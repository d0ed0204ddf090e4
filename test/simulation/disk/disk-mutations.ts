import type { CriClient } from '../../../src/cri/index.ts';
import type { KnownBug } from '../mutations.ts';

/** Bugs in image garbage collection and log rotation; the simulation must find each. */
export const diskMutations: Readonly<Record<string, KnownBug>> = {
  'images are removed without a look at who is about to use them': removingCarelessly(),

  'logs that are full are left alone': {
    breaks: 'logs hold no more than they may',
    shows: { disk: 'scarce', trouble: 'none' },
    cri: (client) => ({
      ...client,
      reopenContainerLog: () => Promise.reject(new Error('simulated failure of ReopenContainerLog')),
    }),
  },
};

function removingCarelessly(): KnownBug {
  let cri: CriClient | undefined;
  const removeAll = async (signal: AbortSignal) => {
    const { images = [] } = (await cri?.listImages({}, signal)) ?? {};
    const { containers = [] } = (await cri?.listContainers({}, signal)) ?? {};
    const used = new Set(containers.map(({ imageRef }) => imageRef));
    for (const { id, pinned } of images)
      if (!pinned && !used.has(id)) await cri?.removeImage({ image: { image: id } }, signal);
  };
  return {
    breaks: 'no image is removed before a container is made of it',
    shows: { disk: 'scarce', trouble: 'none' },
    cri: (client) => {
      cri = client;
      const pullImage: CriClient['pullImage'] = async (request, signal) => {
        const response = await client.pullImage(request, signal);
        await removeAll(signal);
        return response;
      };
      return { ...client, pullImage };
    },
  };
}
