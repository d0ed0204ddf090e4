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

/** Whoever keeps the objects: given as the server's own, not as any user's. */
export interface ObjectStoreAccess {
  /** Makes the object as it is written, or makes it so; throws when it is refused. */
  apply(object: JsonObject, file: string): void;
  /** All that came from manifests, each by a name of its own. */
  applied(): readonly string[];
  remove(name: string): void;
  /** Resolves when more can be kept. */
  whenAcceptingWrites(signal: AbortSignal): Promise<void>;
  /** By which an object that is written is known among those that were applied; throws when it has no name. */
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
  /** Whether every file was read; if not, nobody knows what is no longer wanted. */
  readonly whole: boolean;
}

interface NamedObject extends WrittenObject {
  readonly name: string;
}

const lookEveryMs = 20_000;
const quietMs = 200;
/** Of all files together: all of it is in memory, here and in the API. */
const directoryLimit = 64 * 2 ** 20;
/** A disk that is full may be so for long: the next look tries again. */
const roomWithinMs = 10_000;

/** ConfigMaps, Secrets and volumes that lie in the manifest directory beside the pods that use them. */
export class ManifestObjects {
  readonly #options: ManifestObjectsOptions;
  readonly #hints: HintLatch;
  /** What was told to be wrong, so that it is told once. */
  #told: ReadonlySet<string> = new Set();

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
        await this.look(signal);
        if ((await this.#hints.wait(lookEveryMs, signal)) === 'hint') await clock.sleep(quietMs, signal);
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  /**
   * One look, after which the API has what the directory says. What is wrong is told, and does not make it reject: that
   * only the signal does.
   */
  async look(signal: AbortSignal): Promise<void> {
    const problems: string[] = [];
    try {
      await this.#look(problems, signal);
    } catch (error) {
      signal.throwIfAborted();
      problems.push(`${this.#options.directory}: ${describeError(error)}`);
    }
    this.#tell(problems);
  }

  async #look(problems: string[], signal: AbortSignal): Promise<void> {
    const { objects, whole } = await this.#scan(problems);
    const { keeper, directory } = this.#options;
    const named = objects.flatMap((written) => this.#named(written, problems));
    for (const { object, file } of named) {
      await this.#room(signal);
      this.#try(join(directory, file), problems, () => keeper.apply(object, file));
    }
    // What may be wanted by a file that cannot be read now, or by an object without a name, stays.
    if (whole && named.length === objects.length) await this.#removeOthers(named, problems, signal);
  }

  async #room(signal: AbortSignal): Promise<void> {
    const { keeper, clock } = this.#options;
    const deadline = { clock, ms: roomWithinMs, what: 'hand over more to the store' };
    await withDeadline(deadline, (inner) => keeper.whenAcceptingWrites(inner), signal);
  }

  /** Nothing for an object that does not say what it is called. */
  #named(written: WrittenObject, problems: string[]): readonly NamedObject[] {
    const { keeper, directory } = this.#options;
    const name = this.#try(join(directory, written.file), problems, () => keeper.nameOf(written.object));
    return name === undefined ? [] : [{ ...written, name }];
  }

  async #removeOthers(named: readonly NamedObject[], problems: string[], signal: AbortSignal): Promise<void> {
    const { keeper, directory } = this.#options;
    const wanted = new Set(named.map(({ name }) => name));
    for (const name of keeper.applied().filter((each) => !wanted.has(each))) {
      await this.#room(signal);
      this.#try(`${directory}: removing ${name}`, problems, () => keeper.remove(name));
    }
  }

  /** Undefined when it failed, which is then one of the problems. */
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
      return { objects: read.flatMap((each) => each ?? []), whole: !read.includes(undefined) };
    } catch (error) {
      problems.push(`${directory}: ${describeError(error)}`);
      return { objects: [], whole: false };
    }
  }

  /** 0 for what is not read. */
  async #sizeOf(file: string): Promise<number> {
    const { files, directory } = this.#options;
    const facts = await files.stat(join(directory, file)).catch(() => undefined);
    return facts?.kind === 'file' && facts.size < manifestLimit ? facts.size : 0;
  }

  /** Undefined for what cannot be read: that is told by who reads the pods. */
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

  #tell(problems: readonly string[]): void {
    for (const problem of problems)
      if (!this.#told.has(problem)) this.#options.logger.warn('Cannot use a manifest', { problem });
    this.#told = new Set(problems);
  }
}

function tooMuch(directory: string, name: string): string {
  return `${directory}: all manifests together must have at most ${directoryLimit} bytes: objects in ${name} and in what comes after it are not read`;
}

function itemsOf(value: unknown): readonly JsonObject[] {
  if (typeof value !== 'object' || value === null) return [];
  const { kind, items } = value as JsonObject;
  const all =
    kind === 'List' && Array.isArray(items) ? (items as readonly JsonObject[]) : [value as JsonObject];
  return all.filter((each) => companionKinds.has(String(each?.['kind'])));
}
