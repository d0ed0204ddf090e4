import {
  type Clock,
  describeError,
  HintLatch,
  KeyedBackoff,
  KubelingError,
  type Logger,
  type Random,
  withDeadline,
} from '../lib/index.ts';
import { GrpcError } from '../protocols/grpc/index.ts';
import { type PluginInfo, Registration } from './gen/registration.ts';
import type { PluginChannel, PluginHost, PluginSocket } from './plugin-host.ts';

/** The response of a plugin to GetInfo. */
export interface Plugin {
  readonly name: string;
  /** The path of the socket with the plugin's service. */
  readonly endpoint: string;
  readonly versions: readonly string[];
}

/** Handles plugins of one type. */
export interface PluginHandler {
  /**
   * Registers a plugin; may be called again. A thrown error is sent to the plugin, and the
   * registration is retried.
   */
  register(plugin: Plugin, signal: AbortSignal): Promise<void>;
  /** Deregisters a plugin that was removed or replaced. Does nothing for an unknown plugin. */
  deregister(plugin: Plugin): void;
}

export interface PluginRegistryDeps {
  /** The directory of registration sockets. */
  readonly directory: string;
  readonly host: PluginHost;
  /** The handlers by plugin type. */
  readonly handlers: ReadonlyMap<string, PluginHandler>;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

/*
 *   found ──> info requested ──> registered ──> notified ──> active
 *     ^             │ failed          │ failed      │ failed     │ rejected later
 *     └─ waiting <──┴─ notified of the error <──────┴────────────┘
 *
 * A plugin whose socket is deleted or replaced is deregistered first.
 */
interface Seen {
  readonly identity: string;
  /** The info with which the plugin was registered. */
  known: { readonly handler: PluginHandler; readonly plugin: Plugin } | undefined;
  work: Promise<void> | undefined;
  /** The number of failed connections to the plugin. */
  deaf: number;
  readonly gone: AbortController;
}

const infoMs = 1_000;
const dialMs = 10_000;
const notifyMs = 5_000;
const registerMs = 130_000;
const lookEveryMs = 10_000;
const retry = { baseMs: 500, maxMs: 122_000 };
/**
 * The maximum back-off. It is short because the old socket of a restarting plugin exists only for a
 * moment.
 */
const deafRetryMs = 1_000;
const mostDeaf = 60;

/** Discovers plugins by their sockets, registers them, and notifies them of the result. */
export class PluginRegistry {
  readonly #deps: PluginRegistryDeps;
  readonly #seen = new Map<string, Seen>();
  readonly #backoff: KeyedBackoff;
  readonly #hints: HintLatch;

  constructor(deps: PluginRegistryDeps) {
    this.#deps = deps;
    this.#hints = new HintLatch(deps.clock);
    this.#backoff = new KeyedBackoff({ policy: retry, random: deps.random });
  }

  /** The names of all registered plugins. */
  get names(): readonly string[] {
    return [...this.#seen.values()].flatMap(({ known }) => (known === undefined ? [] : [known.plugin.name]));
  }

  /**
   * Called when a registered plugin turns out to be unusable: it is deregistered and notified, and
   * its registration is retried later.
   */
  refuse({ name, endpoint }: Plugin, why: string): void {
    for (const [path, seen] of this.#seen) {
      const { known } = seen;
      if (known?.plugin.name !== name || known.plugin.endpoint !== endpoint) continue;
      seen.known = undefined;
      known.handler.deregister(known.plugin);
      this.#failed(path, seen, new KubelingError('PLUGIN_REFUSED', why));
      this.#begun(seen, this.#tellRefused(path, why, seen.gone.signal));
    }
  }

  async #tellRefused(path: string, why: string, signal: AbortSignal): Promise<void> {
    const channel = this.#deps.host.open(path);
    await this.#notify(channel, why, signal).finally(() => channel.close());
  }

  async run(signal: AbortSignal): Promise<void> {
    const { host, directory } = this.#deps;
    await host.prepare(directory);
    using _watch = host.watch(directory, () => this.#hints.raise());
    try {
      for (;;) {
        this.#hints.clear();
        await this.#look();
        await this.#hints.wait(this.#nextLookMs(), signal);
      }
    } finally {
      for (const { gone } of this.#seen.values()) gone.abort(signal.reason);
      await Promise.allSettled([...this.#seen.values()].map(({ work }) => work));
      // All plugins are deregistered at shutdown and registered again after a restart.
      for (const path of [...this.#seen.keys()]) this.#letGo(path);
    }
  }

  async #look(): Promise<void> {
    const { host, directory, logger } = this.#deps;
    const sockets = await host.sockets(directory).catch((error: unknown) => {
      logger.error('Failed to list plugin sockets', error, { directory });
      return undefined;
    });
    if (sockets === undefined) return;
    const there = new Map(sockets.map((socket) => [socket.path, socket]));
    for (const [path, { identity }] of [...this.#seen]) {
      if (there.get(path)?.identity !== identity) this.#letGo(path);
    }
    for (const socket of sockets) this.#begin(socket);
  }

  #letGo(path: string): void {
    const seen = this.#seen.get(path);
    this.#seen.delete(path);
    this.#backoff.delete(path);
    seen?.gone.abort(new KubelingError('CANCELLED', "The plugin's socket was deleted"));
    if (seen?.known === undefined) return;
    const { handler, plugin } = seen.known;
    handler.deregister(plugin);
    this.#deps.logger.info('Deregistered plugin', { plugin: plugin.name, socket: path });
  }

  #begin({ path, identity }: PluginSocket): void {
    const seen = this.#seen.get(path) ?? {
      identity,
      known: undefined,
      work: undefined,
      deaf: 0,
      gone: new AbortController(),
    };
    this.#seen.set(path, seen);
    if (seen.known !== undefined || seen.work !== undefined || this.#waitMs(path) > 0) return;
    this.#begun(seen, this.#register(path, seen));
  }

  #begun(seen: Seen, work: Promise<void>): void {
    seen.work = work.finally(() => {
      seen.work = undefined;
      this.#hints.raise();
    });
  }

  #waitMs(path: string): number {
    return this.#backoff.remainingMs(path, { nowMs: this.#deps.clock.monotonicMs() });
  }

  #nextLookMs(): number {
    const waits = [...this.#seen]
      .filter(([, { known, work }]) => known === undefined && work === undefined)
      .map(([path]) => this.#waitMs(path));
    return Math.max(1, Math.min(lookEveryMs, ...waits));
  }

  async #register(path: string, seen: Seen): Promise<void> {
    const { signal } = seen.gone;
    const channel = this.#deps.host.open(path);
    try {
      const found = await this.#ask(channel, path, signal);
      await this.#admit(channel, found, signal);
      if (signal.aborted) found.handler.deregister(found.plugin);
      else this.#registered(path, seen, found);
    } catch (error) {
      if (!signal.aborted) this.#failed(path, seen, error);
    } finally {
      channel.close();
    }
  }

  #registered(path: string, seen: Seen, found: NonNullable<Seen['known']>): void {
    seen.known = found;
    this.#backoff.delete(path);
    this.#deps.logger.info('Registered plugin', { plugin: found.plugin.name, socket: path });
  }

  async #ask(channel: PluginChannel, path: string, signal: AbortSignal): Promise<NonNullable<Seen['known']>> {
    const { clock, handlers } = this.#deps;
    const deadline = { clock, ms: dialMs + infoMs, what: `get the info of the plugin at ${path}` };
    const info = await withDeadline(
      deadline,
      (inner) => channel.client(Registration).getInfo({}, { signal: inner, timeoutMs: infoMs }),
      signal,
    );
    const handler = handlers.get(info.type);
    if (handler === undefined) {
      const why = `no handler registered for plugin type: ${info.type} at socket ${path}`;
      await this.#notify(channel, why, signal);
      throw new KubelingError('PLUGIN_REFUSED', why);
    }
    return { handler, plugin: pluginOf(info, path) };
  }

  /**
   * A plugin that cannot be notified of its registration does not know about it, so it is
   * deregistered.
   */
  async #admit(
    channel: PluginChannel,
    { handler, plugin }: NonNullable<Seen['known']>,
    signal: AbortSignal,
  ): Promise<void> {
    const deadline = { clock: this.#deps.clock, ms: registerMs, what: `register the plugin ${plugin.name}` };
    try {
      await withDeadline(deadline, (inner) => handler.register(plugin, inner), signal);
    } catch (error) {
      signal.throwIfAborted();
      await this.#notify(channel, describeError(error), signal);
      throw error;
    }
    try {
      await this.#tell(channel, { pluginRegistered: true }, signal);
    } catch (error) {
      handler.deregister(plugin);
      throw error;
    }
  }

  /** Notifies the plugin of an error. A failed notification is ignored, because the registration is retried anyway. */
  async #notify(channel: PluginChannel, error: string, signal: AbortSignal): Promise<void> {
    await this.#tell(channel, { pluginRegistered: false, error }, signal).catch(() => {});
  }

  async #tell(
    channel: PluginChannel,
    status: { readonly pluginRegistered: boolean; readonly error?: string },
    signal: AbortSignal,
  ): Promise<void> {
    const deadline = {
      clock: this.#deps.clock,
      ms: notifyMs,
      what: 'notify a plugin of its registration status',
    };
    const call = (inner: AbortSignal) =>
      channel.client(Registration).notifyRegistrationStatus(status, { signal: inner, timeoutMs: notifyMs });
    await withDeadline(deadline, call, signal);
  }

  #failed(path: string, seen: Seen, error: unknown): void {
    const nowMs = this.#deps.clock.monotonicMs();
    const isDeaf = error instanceof GrpcError && error.grpcCode === 'UNAVAILABLE';
    seen.deaf = isDeaf ? seen.deaf + 1 : 0;
    if (isDeaf && seen.deaf <= mostDeaf)
      this.#backoff.restore([[path, { failures: 1, delayMs: deafRetryMs, lastMs: nowMs }]]);
    else this.#backoff.fail(path, { nowMs });
    // A socket without a listener is logged once, because it may exist for years.
    if (!isDeaf || seen.deaf === 1)
      this.#deps.logger.error('Failed to register plugin, retrying', error, { socket: path });
  }
}

function pluginOf({ name, endpoint, supportedVersions }: PluginInfo, socket: string): Plugin {
  return { name, endpoint: endpoint === '' ? socket : endpoint, versions: supportedVersions };
}
