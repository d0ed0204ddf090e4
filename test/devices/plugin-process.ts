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
  /** The kubelet's directory of device plugins. */
  readonly directory: string;
  /**
   * The directory in which the kubelet discovers plugins by their sockets; without it the plugin
   * calls Register itself.
   */
  readonly registry?: string;
  /**
   * The file name of the plugin program, which is in the directory of this file; a device plugin by
   * default.
   */
  readonly program?: string;
}

/** Creates the process of a DRA driver, which reports no devices to the kubelet. */
export function driverProcess(name: string, folder: string, registry: string): PluginProcess {
  return new PluginProcess(
    name,
    { devices: [] },
    { folder, directory: '', registry, program: 'sample-driver.ts' },
  );
}

/** A plugin in a separate process, which can be killed and started again. */
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

  /** Starts the plugin; resolves once the node has registered or rejected it. */
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

  /** Waits until the plugin has been registered more than the given number of times. */
  async registeredAgain(times: number, outcome: 'registered' | 'refused' = 'registered'): Promise<void> {
    const isTold = async () => (this.calls(outcome).length > times ? true : undefined);
    await eventually(
      `the plugin to be ${outcome}`,
      isTold,
      60_000,
      () => `${this.#said} ${this.calls('').join('\n')}`,
    );
  }

  /** Changes the devices that the plugin reports to the kubelet. */
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

  /**
   * Makes the plugin's calls fail: maps a method to the error that its calls return; with `hang`
   * they never return.
   */
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
