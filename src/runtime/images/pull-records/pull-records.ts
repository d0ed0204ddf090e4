import type { Image } from '../../../cri/index.ts';
import { type Clock, describeError, KeyedMutex, type Logger } from '../../../lib/index.ts';
import { bareImageName } from '../../../pods/index.ts';
import type { PullCredential } from '../credentials/keyring.ts';
import { fullImageName } from '../image-name.ts';
import type { RecordFiles } from './record-files.ts';
import type { PulledRecord, RecordedCredentials, RecordedSecret } from './record-format.ts';
import { isSame, recordedOf, withCredentials } from './record-format.ts';

export interface PullRecordsDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly files: RecordFiles;
  readonly policy: VerificationPolicy;
}

/** The outcome of a pull; after the outcome `unknown`, the image may still become present. */
export type PullEnd =
  | { readonly kind: 'pulled'; readonly imageRef: string; readonly used: PullCredential | 'anonymous' }
  | { readonly kind: 'failed' }
  | { readonly kind: 'unknown' };

/**
 * The maximum number of secrets that are recorded for one image without a pull with these secrets.
 */
const maxMatchedSecrets = 100;

/**
 * Records the credentials of each pull, so that a present image that was pulled with a secret is
 * not accessible without this secret. Image names are those in pod specs; image refs are those that
 * the runtime returns.
 */
export class PullRecords {
  readonly #deps: PullRecordsDeps;
  /** The number of pulls in flight per image. */
  readonly #inFlight = new Map<string, number>();
  /** The pull intents for which the last prune found neither the image nor a running pull. */
  #idle = new Set<string>();
  /** Serializes the changes of each record file. */
  readonly #mutex = new KeyedMutex<string>();

  constructor(deps: PullRecordsDeps) {
    this.#deps = deps;
  }

  /** Reads the records; called before the first pull. */
  async open(): Promise<void> {
    await this.#deps.files.open();
  }

  /** Records the intent before the pull; from then on the image counts as pulled by the kubelet. */
  async begin(image: string, signal: AbortSignal): Promise<void> {
    await this.#mutex.run(
      `intent ${image}`,
      async () => {
        await this.#deps.files.writeIntent(image);
        this.#idle.delete(image);
        this.#inFlight.set(image, (this.#inFlight.get(image) ?? 0) + 1);
      },
      signal,
    );
  }

  /**
   * Records the outcome of a pull; called once per `begin`. Never rejects: when the record cannot
   * be written, the intent stays and access to the image is verified again.
   */
  async end(image: string, end: PullEnd): Promise<void> {
    const { signal } = new AbortController();
    const recordedPull = end.kind === 'pulled' ? await this.#recordPulled(image, end, signal) : end.kind;
    await this.#mutex.run(`intent ${image}`, () => this.#finish(image, recordedPull), signal);
  }

  async #recordPulled(
    image: string,
    { imageRef, used }: Extract<PullEnd, { kind: 'pulled' }>,
    signal: AbortSignal,
  ): Promise<PullEnd['kind']> {
    try {
      await this.#updateRecord(image, imageRef, recordedOf(used), signal);
      return 'pulled';
    } catch (error) {
      this.#logError('Failed to record image pull', error, image);
      return 'unknown';
    }
  }

  async #finish(image: string, end: PullEnd['kind']): Promise<void> {
    if (this.#countDown(image) > 0 || end === 'unknown') return;
    await this.#deps.files
      .removeIntent(image)
      .catch((error) => this.#logError('Failed to remove image pull intent', error, image));
  }

  #countDown(image: string): number {
    const left = (this.#inFlight.get(image) ?? 1) - 1;
    if (left > 0) this.#inFlight.set(image, left);
    else this.#inFlight.delete(image);
    return Math.max(0, left);
  }

  /**
   * Whether a pod may use a present image without pulling it. Loads the credentials only when they
   * are needed; rejects if loading fails.
   */
  async mayUse(
    image: string,
    imageRef: string,
    credentials: () => Promise<readonly PullCredential[]>,
    signal: AbortSignal,
  ): Promise<boolean> {
    const found = await this.#readRecord(image, imageRef);
    if (found === undefined) return false;
    if (!mustVerify(this.#deps.policy, image, found.origin)) return true;
    const recorded = found.record?.credentialMapping.get(bareImageName(image));
    if (recorded === undefined) return false;
    if (recorded.nodePodsAccessible) return true;
    if (recorded.kubernetesSecrets.length + recorded.kubernetesServiceAccounts.length === 0) return false;
    const held = await credentials();
    const fitting = held.find((credential) => fits(recorded, credential));
    if (fitting === undefined) return false;
    await this.#recordMatch(image, imageRef, recorded, fitting, signal);
    return true;
  }

  /** Returns the records of the image; undefined when they cannot be read. */
  async #readRecord(
    image: string,
    imageRef: string,
  ): Promise<{ readonly record: PulledRecord | undefined; readonly origin: ImageOrigin } | undefined> {
    try {
      const record = await this.#deps.files.record(imageRef);
      const isOwn =
        record !== undefined || this.#inFlight.has(image) || (await this.#deps.files.hasIntent(image));
      return { record, origin: isOwn ? 'pulled-here' : 'preloaded' };
    } catch (error) {
      this.#logError('Failed to read image pull records', error, image);
      return undefined;
    }
  }

  /**
   * Records a secret that gives access to the image: a secret with the same login as a recorded
   * one, or the same secret with a new login.
   */
  async #recordMatch(
    image: string,
    imageRef: string,
    recorded: RecordedCredentials,
    credential: PullCredential,
    signal: AbortSignal,
  ): Promise<void> {
    if (credential.source.kind !== 'secret') return;
    if (recorded.kubernetesSecrets.length >= maxMatchedSecrets) return;
    try {
      await this.#updateRecord(image, imageRef, recordedOf(credential), signal);
    } catch (error) {
      signal.throwIfAborted();
      this.#logError('Failed to record image access', error, image);
    }
  }

  async #updateRecord(
    image: string,
    imageRef: string,
    added: RecordedCredentials | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    const { files, clock } = this.#deps;
    await this.#mutex.run(
      `record ${imageRef}`,
      async () => {
        // An unreadable record is replaced, because it gives no pod access to the image.
        const known = await files.record(imageRef).catch(() => undefined);
        const nowMs = clock.now();
        const before = known ?? { imageRef, lastUpdatedMs: nowMs, credentialMapping: new Map() };
        const after =
          added === undefined ? before : withCredentials(before, bareImageName(image), added, nowMs);
        if (after !== known) await files.writeRecord(after);
      },
      signal,
    );
  }

  /**
   * Resolves the intents of a previous kubelet: for a present image it writes a record without
   * credentials, so that every pod must verify its access.
   */
  async resolveInterrupted(images: readonly Image[], signal: AbortSignal): Promise<void> {
    const refs = refsByName(images);
    for (const image of await this.#deps.files.intents()) {
      const imageRef = refs.get(fullImageName(image));
      if (imageRef === undefined || this.#inFlight.has(image)) continue;
      await this.#updateRecord(image, imageRef, undefined, signal);
      await this.#deps.files.removeIntent(image);
    }
  }

  /**
   * Removes records of images that are not listed, except records changed after `changedBeforeMs`,
   * which is before the listing. An intent is removed when two consecutive calls found neither its
   * image nor a pull, because the end of a pull may be recorded late.
   */
  async prune(images: readonly Image[], changedBeforeMs: number, signal: AbortSignal): Promise<void> {
    const there = new Set(images.flatMap(({ id, repoDigests }) => [id, ...repoDigests]));
    for (const { imageRef } of await this.#deps.files.records()) {
      if (!there.has(imageRef)) await this.#removeRecord(imageRef, changedBeforeMs, signal);
    }
    const names = refsByName(images);
    const intents = await this.#deps.files.intents();
    const idle = intents.filter((image) => !names.has(fullImageName(image)) && !this.#inFlight.has(image));
    const wereIdle = idle.filter((image) => this.#idle.has(image));
    this.#idle = new Set(idle);
    for (const image of wereIdle) await this.#removeIntent(image, signal);
  }

  async #removeRecord(imageRef: string, changedBeforeMs: number, signal: AbortSignal): Promise<void> {
    const { files } = this.#deps;
    await this.#mutex.run(
      `record ${imageRef}`,
      async () => {
        const record = await files.record(imageRef).catch(() => undefined);
        if (record !== undefined && record.lastUpdatedMs < changedBeforeMs)
          await files.removeRecord(imageRef);
      },
      signal,
    );
  }

  async #removeIntent(image: string, signal: AbortSignal): Promise<void> {
    await this.#mutex.run(
      `intent ${image}`,
      async () => {
        // Checks again under the lock, because a pull of the image may have started or ended since
        // the caller's check.
        if (!this.#idle.delete(image) || this.#inFlight.has(image)) return;
        await this.#deps.files.removeIntent(image);
      },
      signal,
    );
  }

  #logError(what: string, error: unknown, image: string): void {
    this.#deps.logger.error(what, undefined, { image, because: describeError(error) });
  }
}

function refsByName(images: readonly Image[]): ReadonlyMap<string, string> {
  const named = images.flatMap(({ id, repoTags, repoDigests }) =>
    [...repoTags, ...repoDigests].map((name) => [fullImageName(name), id] as const),
  );
  return new Map(named);
}

function fits(recorded: RecordedCredentials, { source, hash }: PullCredential): boolean {
  if (source.kind === 'service-account') {
    return recorded.kubernetesServiceAccounts.some((account) => isSame(account, source));
  }
  if (source.kind !== 'secret') return false;
  const isKnown = (secret: RecordedSecret) =>
    (hash !== '' && secret.credentialHash === hash) || isSame(secret, source);
  return recorded.kubernetesSecrets.some(isKnown);
}

/** Selects the present images that a pod may use without verifying its credentials by a pull. */
export type VerificationPolicy =
  | { readonly kind: 'NeverVerify' }
  | { readonly kind: 'NeverVerifyPreloadedImages' }
  | { readonly kind: 'NeverVerifyAllowlistedImages'; readonly allowlist: readonly string[] }
  | { readonly kind: 'AlwaysVerify' };

export type ImageOrigin =
  /** The origin `pulled-here`: a kubelet of this node has pulled the image, or has started to. */
  'pulled-here' | 'preloaded';

function mustVerify(policy: VerificationPolicy, image: string, origin: ImageOrigin): boolean {
  switch (policy.kind) {
    case 'NeverVerify':
      return false;
    case 'AlwaysVerify':
      return true;
    case 'NeverVerifyPreloadedImages':
      return origin === 'pulled-here';
    case 'NeverVerifyAllowlistedImages':
      return !policy.allowlist.some((pattern) => isListed(pattern, bareImageName(image)));
  }
}

function isListed(pattern: string, name: string): boolean {
  return pattern.endsWith('/*') ? name.startsWith(pattern.slice(0, -1)) : pattern === name;
}
