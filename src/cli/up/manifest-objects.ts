import { join } from 'node:path';
import type { JsonObject } from '../../api/index.ts';
import {
  type Clock,
  describeError,
  HintLatch,
  type Logger,
  readYamlDocuments,
  withDeadline,
  yamlToJs,
} from '../../lib/index.ts';
import { companionKinds, isManifestName, type ManifestFiles, manifestLimit } from '../../sources/index.ts';

/** Access to the object store; requests have the permissions of the server, not those of a user. */
export interface ObjectStoreAccess {
  /** Creates or updates the object; throws if it is rejected. */
  apply(object: JsonObject, file: string): void;
  /** Returns the names of all objects that were applied from manifests. */
  applied(): readonly string[];
  remove(name: string): void;
  /** Resolves when the store accepts more objects. */
  whenAcceptingWrites(signal: AbortSignal): Promise<void>;
  /** Returns the name that identifies an applied object; throws if the object has none. */
  nameOf(object: JsonObject): string;
}

export interface ManifestObjectsOptions {
  readonly directory: string;
  readonly files: ManifestFiles;
  readonly keeper: ObjectStoreAccess;
  readonly clock: Clock;
  readonly logger: Logger;
}

interface WrittenObject {
  readonly file: string;
  readonly object: JsonObject;
}

interface Scan {
  readonly objects: readonly WrittenObject[];
  /** Whether every manifest file was read; if not, no object may be removed. */
  readonly isComplete: boolean;
}

interface NamedObject extends WrittenObject {
  readonly name: string;
}

const scanIntervalMs = 20_000;
const quietMs = 200;
/**
 * The limit for all manifest files together, because all of them are in memory, here and in the
 * API.
 */
const directoryLimit = 64 * 2 ** 20;
/** How long to wait for the store; a full disk may stay full, and the next scan retries. */
const namespaceDeadlineMs = 10_000;

/**
 * Applies ConfigMaps, Secrets and volumes from the manifest directory to the API, for the static
 * pods that use them.
 */
export class ManifestObjects {
  readonly #options: ManifestObjectsOptions;
  readonly #hints: HintLatch;
  /** The problems already reported, so that each is reported only once. */
  #reported: ReadonlySet<string> = new Set();

  constructor(options: ManifestObjectsOptions) {
    this.#options = options;
    this.#hints = new HintLatch(options.clock);
  }

  async run(signal: AbortSignal): Promise<void> {
    const { files, directory, clock } = this.#options;
    using _watch = files.watch(directory, { onHint: () => this.#hints.raise(), onLost: () => {} });
    try {
      while (!signal.aborted) {
        this.#hints.clear();
        await this.scanOnce(signal);
        if ((await this.#hints.wait(scanIntervalMs, signal)) === 'hint') await clock.sleep(quietMs, signal);
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  /**
   * Scans the directory once and makes the API match it. Problems are reported; rejects only when
   * aborted.
   */
  async scanOnce(signal: AbortSignal): Promise<void> {
    const problems: string[] = [];
    try {
      await this.#apply(problems, signal);
    } catch (error) {
      signal.throwIfAborted();
      problems.push(`${this.#options.directory}: ${describeError(error)}`);
    }
    this.#report(problems);
  }

  async #apply(problems: string[], signal: AbortSignal): Promise<void> {
    const { objects, isComplete } = await this.#scan(problems);
    const { keeper, directory } = this.#options;
    const named = objects.flatMap((written) => this.#named(written, problems));
    for (const { object, file } of named) {
      await this.#awaitNamespace(signal);
      this.#try(join(directory, file), problems, () => keeper.apply(object, file));
    }
    // Removes nothing if an unreadable file or an object without a name could define the missing
    // object.
    if (isComplete && named.length === objects.length) await this.#removeUnlisted(named, problems, signal);
  }

  async #awaitNamespace(signal: AbortSignal): Promise<void> {
    const { keeper, clock } = this.#options;
    const deadline = { clock, ms: namespaceDeadlineMs, what: 'write more to the store' };
    await withDeadline(deadline, (inner) => keeper.whenAcceptingWrites(inner), signal);
  }

  /** Returns the object with its name; an empty list if it has none. */
  #named(written: WrittenObject, problems: string[]): readonly NamedObject[] {
    const { keeper, directory } = this.#options;
    const name = this.#try(join(directory, written.file), problems, () => keeper.nameOf(written.object));
    return name === undefined ? [] : [{ ...written, name }];
  }

  async #removeUnlisted(
    named: readonly NamedObject[],
    problems: string[],
    signal: AbortSignal,
  ): Promise<void> {
    const { keeper, directory } = this.#options;
    const listed = new Set(named.map(({ name }) => name));
    for (const name of keeper.applied().filter((each) => !listed.has(each))) {
      await this.#awaitNamespace(signal);
      this.#try(`${directory}: removing ${name}`, problems, () => keeper.remove(name));
    }
  }

  /** Runs the work; returns undefined after a failure, which is recorded as a problem. */
  #try<T>(about: string, problems: string[], work: () => T): T | undefined {
    try {
      return work();
    } catch (error) {
      problems.push(`${about}: ${describeError(error)}`);
      return undefined;
    }
  }

  async #scan(problems: string[]): Promise<Scan> {
    const { files, directory } = this.#options;
    try {
      const names = (await files.list(directory)).filter(isManifestName).sort();
      const read: (readonly WrittenObject[] | undefined)[] = [];
      let bytes = 0;
      for (const name of names) {
        bytes += await this.#sizeOf(name);
        if (bytes > directoryLimit) {
          problems.push(tooMuch(directory, name));
          read.push(undefined);
          break;
        }
        read.push(await this.#read(name));
      }
      return { objects: read.flatMap((each) => each ?? []), isComplete: !read.includes(undefined) };
    } catch (error) {
      problems.push(`${directory}: ${describeError(error)}`);
      return { objects: [], isComplete: false };
    }
  }

  /** Returns the size of a manifest file; 0 for files that are not read. */
  async #sizeOf(file: string): Promise<number> {
    const { files, directory } = this.#options;
    const facts = await files.stat(join(directory, file)).catch(() => undefined);
    return facts?.kind === 'file' && facts.size < manifestLimit ? facts.size : 0;
  }

  /** Reads a file; undefined if it is unreadable, which the static pod source reports. */
  async #read(file: string): Promise<readonly WrittenObject[] | undefined> {
    const { files, directory } = this.#options;
    try {
      const path = join(directory, file);
      const facts = await files.stat(path);
      if (facts?.kind !== 'file') return [];
      if (facts.size >= manifestLimit) return undefined;
      const bytes = await files.read(path);
      if (bytes === undefined) return [];
      const documents = await readYamlDocuments(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
      if (documents.some(({ tree }) => tree === undefined)) return undefined;
      return documents
        .flatMap(({ tree }) => (tree === undefined ? [] : itemsOf(yamlToJs(tree))))
        .map((object) => ({ file, object }));
    } catch {
      return undefined;
    }
  }

  #report(problems: readonly string[]): void {
    for (const problem of problems)
      if (!this.#reported.has(problem)) this.#options.logger.warn('Failed to apply manifest', { problem });
    this.#reported = new Set(problems);
  }
}

function tooMuch(directory: string, name: string): string {
  return `${directory}: all manifests together must have at most ${directoryLimit} bytes: objects in ${name} and later files are not read`;
}

function itemsOf(value: unknown): readonly JsonObject[] {
  if (typeof value !== 'object' || value === null) return [];
  const { kind, items } = value as JsonObject;
  const all =
    kind === 'List' && Array.isArray(items) ? (items as readonly JsonObject[]) : [value as JsonObject];
  return all.filter((each) => companionKinds.has(String(each?.['kind'])));
}
