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

/** How a pull went; after an unknown end the image may yet come. */
export type PullEnd =
  | { readonly kind: 'pulled'; readonly imageRef: string; readonly used: PullCredential | 'anonymous' }
  | { readonly kind: 'failed' }
  | { readonly kind: 'unknown' };

/** More secrets than this are not noted for one image while merely looking. */
const maxMatchedSecrets = 100;

/**
 * Remembers with what each image was pulled, so that an image which needed a secret is not to be had without one just
 * because it is on the machine. Images are named as pods write them, image refs as the runtime does.
 */
export class PullRecords {
  readonly #deps: PullRecordsDeps;
  /** Pulls under way, by image. */
  readonly #inFlight = new Map<string, number>();
  /** Intents that had neither an image nor a pull when we last looked. */
  #idle = new Set<string>();
  /** One change of one file at a time. */
  readonly #mutex = new KeyedMutex<string>();

  constructor(deps: PullRecordsDeps) {
    this.#deps = deps;
  }

  /** Before anything is pulled. */
  async open(): Promise<void> {
    await this.#deps.files.open();
  }

  /** To be written before the pull begins: from then on the image counts as pulled by us. */
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

  /** Once for each `begin`. Never rejects: what cannot be noted leaves the intent, and the image is verified again. */
  async end(image: string, end: PullEnd): Promise<void> {
    const { signal } = new AbortController();
    const noted = end.kind === 'pulled' ? await this.#recordPulled(image, end, signal) : end.kind;
    await this.#mutex.run(`intent ${image}`, () => this.#finish(image, noted), signal);
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
      this.#logError('Cannot note an image pull', error, image);
      return 'unknown';
    }
  }

  async #finish(image: string, end: PullEnd['kind']): Promise<void> {
    if (this.#countDown(image) > 0 || end === 'unknown') return;
    await this.#deps.files
      .removeIntent(image)
      .catch((error) => this.#logError('Cannot forget that an image was to be pulled', error, image));
  }

  #countDown(image: string): number {
    const left = (this.#inFlight.get(image) ?? 1) - 1;
    if (left > 0) this.#inFlight.set(image, left);
    else this.#inFlight.delete(image);
    return Math.max(0, left);
  }

  /**
   * Whether a pod may use an image that is here; if not, it has to pull it with its own credentials. They are asked for
   * only when it depends on them, and what they reject with is passed on.
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

  /** Undefined when the records cannot be read. */
  async #readRecord(
    image: string,
    imageRef: string,
  ): Promise<{ readonly record: PulledRecord | undefined; readonly origin: ImageOrigin } | undefined> {
    try {
      const record = await this.#deps.files.record(imageRef);
      const isOurs =
        record !== undefined || this.#inFlight.has(image) || (await this.#deps.files.hasIntent(image));
      return { record, origin: isOurs ? 'pulled-here' : 'preloaded' };
    } catch (error) {
      this.#logError('Cannot read the records of an image', error, image);
      return undefined;
    }
  }

  /** The same login under another name, or another login under the same name, is good from now on as it is. */
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
      this.#logError('Cannot note who uses an image', error, image);
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
        // One that cannot be read is replaced: it proves nothing any more.
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
   * Pulls of an earlier kubelet whose end nobody noted: where the image is there, it becomes a record that proves
   * nothing, so that everybody has to show credentials for it.
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
   * Forgets images that are not in the list, except those that changed after a time, a while before the list was asked
   * for. An intent goes when it was without an image and a pull the last time already: the end of a pull may come late.
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
        // A pull may have begun since, and may even have ended.
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

/** Which of the images that are here a pod may use without showing that it could pull them. */
export type VerificationPolicy =
  | { readonly kind: 'NeverVerify' }
  | { readonly kind: 'NeverVerifyPreloadedImages' }
  | { readonly kind: 'NeverVerifyAllowlistedImages'; readonly allowlist: readonly string[] }
  | { readonly kind: 'AlwaysVerify' };

export type ImageOrigin =
  /** A kubelet of this node pulled it, or began to. */
  'pulled-here' | 'preloaded';

export function mustVerify(policy: VerificationPolicy, image: string, origin: ImageOrigin): boolean {
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
