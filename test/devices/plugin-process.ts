import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { whenLeftBehind } from '../fakes/left-behind.ts';
import { eventually } from '../kubeling-node.ts';

const fileOf = (program: string) => fileURLToPath(new URL(program, import.meta.url));

export interface Offer {
  readonly devices: readonly { readonly id: string; readonly health?: string; readonly numa?: number }[];
  readonly preStart?: boolean;
  readonly preferred?: readonly string[];
  readonly cdi?: boolean;
}

export interface PluginPlaces {
  readonly folder: string;
  /** The kubelet's directory for plugins of devices. */
  readonly directory: string;
  /** Where plugins are found by their sockets; it registers by itself unless given. */
  readonly registry?: string;
  /** Beside this file; a plugin for devices unless given. */
  readonly program?: string;
}

/** A driver of resource claims instead, which has no devices to tell of. */
export function driverProcess(name: string, folder: string, registry: string): PluginProcess {
  return new PluginProcess(
    name,
    { devices: [] },
    { folder, directory: '', registry, program: 'sample-driver.ts' },
  );
}

/** A plugin in a process of its own, which can be killed and started again. */
export class PluginProcess {
  readonly resource: string;
  readonly #places: PluginPlaces;
  #process: ChildProcess | undefined;
  #said = '';

  constructor(resource: string, offer: Offer, places: PluginPlaces) {
    this.resource = resource;
    this.#places = places;
    mkdirSync(places.folder, { recursive: true });
    writeFileSync(this.#file('calls.log'), '');
    this.#write(offer);
  }

  /** Settles once the node has registered it, or refused to. */
  async start(outcome: 'registered' | 'refused' = 'registered'): Promise<void> {
    const { folder, directory, registry = '', program = 'sample-plugin.ts' } = this.#places;
    const child = spawn(process.execPath, [fileOf(program), this.resource, folder, directory, registry]);
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk) => {
        this.#said += String(chunk);
      });
    this.#process = child;
    const leftBehind = whenLeftBehind(() => child.kill('SIGKILL'));
    child.once('exit', () => leftBehind[Symbol.dispose]());
    await this.registeredAgain(this.calls(outcome).length, outcome);
  }

  /** Waits until it has been registered more often than that. */
  async registeredAgain(times: number, outcome: 'registered' | 'refused' = 'registered'): Promise<void> {
    const isTold = async () => (this.calls(outcome).length > times ? true : undefined);
    await eventually(
      `the plugin to be ${outcome}`,
      isTold,
      60_000,
      () => `${this.#said} ${this.calls('').join('\n')}`,
    );
  }

  /** Tells the kubelet of other devices. */
  tell(offer: Offer): void {
    this.#write(offer);
    this.#process?.kill('SIGHUP');
  }

  async kill(): Promise<void> {
    const child = this.#process;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await gone;
  }

  /** What calls of a method are to fail with; `hang` gives no answer. */
  trouble(methods: Readonly<Record<string, string>> | undefined): void {
    if (methods === undefined) rmSync(this.#file('trouble.json'), { force: true });
    else writeFileSync(this.#file('trouble.json'), JSON.stringify(methods));
  }

  calls(method: string): readonly string[] {
    const lines = readFileSync(this.#file('calls.log'), 'utf8').split('\n');
    return lines.filter((line) => line !== '' && line.startsWith(method));
  }

  #write(offer: Offer): void {
    writeFileSync(this.#file('offer.json'), JSON.stringify(offer));
  }

  #file(name: string): string {
    return join(this.#places.folder, name);
  }
}
