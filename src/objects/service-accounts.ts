import { type ApiClient, apiResources } from '../api/index.ts';
import type { ServiceAccount } from '../kinds/index.ts';
import type { Pod } from '../pods/index.ts';
import type { Tokens } from './tokens.ts';

/** The data about a service account that an image credential provider receives. */
export interface AccountFacts {
  readonly uid: string;
  readonly annotations: Readonly<Record<string, string>>;
}

export interface AccountToken {
  readonly pod: Pod;
  readonly serviceAccount: string;
  readonly serviceAccountUid: string;
  readonly audience: string;
}

export interface PodServiceAccountsDeps {
  readonly api: Pick<ApiClient, 'get'>;
  readonly tokens: Pick<Tokens, 'get' | 'observeServiceAccount'>;
}

/** The service accounts of pods, for image pulls with their identity. */
export class PodServiceAccounts {
  readonly #deps: PodServiceAccountsDeps;

  constructor(deps: PodServiceAccountsDeps) {
    this.#deps = deps;
  }

  async get(namespace: string, name: string, signal: AbortSignal): Promise<AccountFacts> {
    const { api, tokens } = this.#deps;
    const ref = { resource: apiResources.serviceAccounts, namespace, name };
    const { metadata } = await api.get<ServiceAccount>(ref, {}, signal);
    const { uid = '', annotations = {} } = metadata ?? {};
    if (uid !== '') tokens.observeServiceAccount(namespace, name, uid);
    return { uid, annotations };
  }

  async token({ pod, audience, ...account }: AccountToken, signal: AbortSignal): Promise<string> {
    const { name, namespace, uid } = pod.metadata;
    const { token } = await this.#deps.tokens.get(
      { ...account, namespace, audience, pod: { name, uid } },
      signal,
    );
    return token;
  }
}
