import type { KnownBug } from '../mutations.ts';

export const deviceMutations: Readonly<Record<string, KnownBug>> = {
  /** Bug: the checkpoint of the device manager cannot be read after a restart. */
  'who has which devices is forgotten with the kubelet': {
    machine: (machine) => ({
      ...machine,
      files: {
        ...machine.files,
        readEnd: async (path, maxBytes) =>
          path.endsWith('kubelet_internal_checkpoint')
            ? undefined
            : await machine.files.readEnd(path, maxBytes),
      },
    }),
    breaks: 'no device has two owners',
    shows: { devices: 'offered', trouble: 'kubelet' },
  },
};
