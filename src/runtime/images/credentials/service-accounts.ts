import { KubelingError } from '../../../lib/index.ts';
import type { Pod } from '../../../pods/index.ts';

export interface ServiceAccountFacts {
  readonly uid: string;
  readonly annotations: Readonly<Record<string, string>>;
}

export interface PodTokenRequest {
  readonly pod: Pod;
  readonly serviceAccount: string;
  readonly serviceAccountUid: string;
  readonly audience: string;
}

/** The service accounts of pods, and tokens of theirs that are good as long as the pod is. Both may reject. */
export interface ServiceAccounts {
  get(namespace: string, name: string, signal: AbortSignal): Promise<ServiceAccountFacts>;
  token(request: PodTokenRequest, signal: AbortSignal): Promise<string>;
}

/** For a node without anybody to ask. */
export const noServiceAccounts: ServiceAccounts = {
  async get(namespace, name) {
    throw new KubelingError(
      'IMAGE_CREDENTIALS',
      `Cannot read the service account ${namespace}/${name} as this node knows of no API server`,
    );
  },
  async token({ pod, serviceAccount }) {
    throw new KubelingError(
      'IMAGE_CREDENTIALS',
      `Cannot get a token of ${pod.metadata.namespace}/${serviceAccount} as this node knows of no API server`,
    );
  },
};
