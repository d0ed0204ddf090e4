import type { CSIDriver } from '../../kinds/index.ts';
import { apiTime, describeError } from '../../lib/index.ts';
import type { Pod } from '../../pods/index.ts';
import { unusable } from '../projected/payload.ts';
import type { CsiApi } from './csi-api.ts';
import { type CsiVolume, type SecretName, textsOf } from './csi-request.ts';

const tokensKey = 'csi.storage.k8s.io/serviceAccount.tokens';

/** What the secret that a volume names says; rejects when there is none. */
export async function secretsFor(
  api: CsiApi | undefined,
  what: string,
  ref: SecretName | undefined,
  signal: AbortSignal,
): Promise<Readonly<Record<string, string>>> {
  if (ref === undefined) return {};
  const failed = `fetching ${what} ${ref.namespace}/${ref.name} failed`;
  const found = await api?.secret(ref.namespace, ref.name, signal).catch((error: unknown) => {
    throw unusable(`${failed}: ${describeError(error)}`, error);
  });
  if (found === undefined) throw unusable(`${failed}: secrets "${ref.name}" not found`);
  return textsOf(found);
}

/** Tokens of the pod for those whom its driver names. */
export async function tokensFor(
  api: CsiApi | undefined,
  { metadata, spec: { serviceAccountName = '' } }: Pod,
  driver: CSIDriver | undefined,
  signal: AbortSignal,
): Promise<Readonly<Record<string, string>>> {
  const { tokenRequests = [] } = driver?.spec ?? {};
  if (tokenRequests.length === 0 || api === undefined) return {};
  const { namespace, name, uid } = metadata;
  const issued: Record<string, { readonly token: string; readonly expirationTimestamp: string }> = {};
  for (const { audience, expirationSeconds } of tokenRequests) {
    const wish = expirationSeconds === undefined ? {} : { expirationSeconds: Number(expirationSeconds) };
    const ask = { namespace, serviceAccount: serviceAccountName, audience, pod: { name, uid }, ...wish };
    const { token, expiresMs } = await api.tokens.get(ask, signal);
    issued[audience] = { token, expirationTimestamp: apiTime(expiresMs) };
  }
  return { [tokensKey]: JSON.stringify(issued) };
}

/** Only a driver that says so can do without a PersistentVolume, and one that says nothing can do with one alone. */
export function checkMode({ mode, driver }: CsiVolume, found: CSIDriver | undefined): void {
  const modes = found?.spec.volumeLifecycleModes ?? [];
  const supported = modes.length === 0 ? ['Persistent'] : modes;
  if (supported.includes(mode)) return;
  const known =
    found === undefined
      ? 'no CSIDriver object'
      : `only supports [${supported.map((one) => JSON.stringify(one)).join(' ')}]`;
  throw unusable(
    `kubernetes.io/csi: mounter.SetupAt failed to check volume lifecycle mode: volume mode ${JSON.stringify(mode)} not supported by driver ${driver} (${known})`,
  );
}
