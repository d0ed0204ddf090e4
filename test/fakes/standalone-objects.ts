import { KubelingError, untilAborted } from '../../src/lib/index.ts';
import type { PodObjects, TokenSource } from '../../src/objects/index.ts';

function refused(): KubelingError {
  return new KubelingError('OBJECTS_STANDALONE', 'not supported due to running kubelet in standalone mode');
}

/** Objects of a node without an API server: every read fails. */
export const standaloneObjects: PodObjects = {
  register() {},
  unregister() {},
  async secret() {
    throw refused();
  },
  async configMap() {
    throw refused();
  },
  run: untilAborted,
};

/** Tokens of a node without an API server: every request fails. */
export const standaloneTokens: TokenSource = {
  async get() {
    throw refused();
  },
  forgetPod() {},
};
