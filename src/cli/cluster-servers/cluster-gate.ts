import type { ApiClient } from '../../api/index.ts';
import type { KubeletConfiguration } from '../../config/index.ts';
import type { Clock, Logger, Random } from '../../lib/index.ts';
import {
  apiReviews,
  type ClientCa,
  type Gate,
  type GateSettings,
  makeGate,
} from '../../server/remote/index.ts';

export interface ClusterGateOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly config: Pick<KubeletConfiguration, 'authentication' | 'authorization'>;
  readonly nodeName: string;
  /** Which right it takes to enter pods; always that to create something unless given. */
  readonly streams?: 'create' | 'by-method' | undefined;
  /** Undefined without an API server. */
  readonly api: Pick<ApiClient, 'create'> | undefined;
  readonly clientCa: ClientCa | undefined;
}

/** Who may pass, as the configuration says. Throws AUTH_CONFIG for one under which nobody could be known or judged. */
export function clusterGate({ config, nodeName, api, streams, ...deps }: ClusterGateOptions): Gate {
  const reviews = api === undefined ? undefined : apiReviews(api);
  const settings = gateSettings(config, nodeName);
  return makeGate(
    { ...settings, streams: streams === 'by-method' ? streams : 'always-create' },
    { ...deps, reviews },
  );
}

function gateSettings(
  { authentication, authorization }: ClusterGateOptions['config'],
  nodeName: string,
): GateSettings {
  const { anonymous, webhook } = authentication;
  const { cacheAuthorizedTTLMs: allowedMs, cacheUnauthorizedTTLMs: deniedMs } = authorization.webhook;
  return {
    anonymous: anonymous.enabled ? 'allowed' : 'refused',
    tokenWebhook: webhook.enabled ? { kind: 'on', cacheMs: webhook.cacheTTLMs } : { kind: 'off' },
    authorization:
      authorization.mode === 'Webhook' ? { mode: 'Webhook', allowedMs, deniedMs } : { mode: 'AlwaysAllow' },
    nodeName,
  };
}
