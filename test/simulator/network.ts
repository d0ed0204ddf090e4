import { GrpcError } from '../../src/protocols/grpc/index.ts';
import { inContext } from './refusals.ts';

/**
 * Assigns pod addresses in increasing order, so that a released address is not reused immediately.
 */
export class AddressPool {
  readonly #base: number;
  readonly #size: number;
  readonly #used = new Set<number>();
  readonly #cidr: string;
  #last = 1;

  /** Parses an IPv4 range such as 10.88.0.0/16. */
  constructor(cidr: string) {
    const [address = '', bits = ''] = cidr.split('/');
    const parts = address.split('.').map(Number);
    const valid =
      parts.length === 4 && parts.every((part) => part >= 0 && part < 256) && /^(8|9|[12]\d|30)$/.test(bits);
    if (!valid) throw new GrpcError('INVALID_ARGUMENT', `${cidr} is no IPv4 range of 8 to 30 bits`);
    this.#cidr = cidr;
    this.#size = 2 ** (32 - Number(bits));
    this.#base = parts.reduce((sum, part) => sum * 256 + part, 0);
    this.#base -= this.#base % this.#size;
  }

  /**
   * The first two addresses and the last one of the range are not assigned, because the network
   * uses them.
   */
  take(): string {
    for (let tried = 0; tried < this.#size; tried++) {
      this.#last = this.#last + 1 >= this.#size - 1 ? 2 : this.#last + 1;
      if (this.#used.has(this.#last)) continue;
      this.#used.add(this.#last);
      return formatAddress(this.#base + this.#last);
    }
    throw new GrpcError(
      'UNKNOWN',
      `plugin type="bridge" failed (add): failed to allocate for range 0: no IP addresses available in range set: ${this.#cidr}`,
    );
  }

  giveBack(address: string): void {
    const number = address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
    this.#used.delete(number - this.#base);
  }

  get taken(): number {
    return this.#used.size;
  }
}

function formatAddress(number: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(number / 2 ** shift) % 256).join('.');
}

/** The simulated network plugin: adds sandboxes to the pod network if it is configured. */
export class PodNetwork {
  readonly #addresses: AddressPool;
  ready = true;

  constructor(cidr: string) {
    this.#addresses = new AddressPool(cidr);
  }

  attach(sandboxId: string): readonly string[] {
    try {
      this.#check();
      return [this.#addresses.take()];
    } catch (error) {
      throw inContext(`failed to setup network for sandbox "${sandboxId}"`, error);
    }
  }

  detach(sandboxId: string, ips: readonly string[]): void {
    try {
      this.#check();
    } catch (error) {
      throw inContext(`failed to destroy network for sandbox "${sandboxId}"`, error);
    }
    this.forget(ips);
  }

  /** Releases addresses, also when the network is not ready. */
  forget(ips: readonly string[]): void {
    for (const ip of ips) this.#addresses.giveBack(ip);
  }

  /** How many addresses are in use: zero on an empty node. */
  get addressesTaken(): number {
    return this.#addresses.taken;
  }

  #check(): void {
    if (!this.ready) throw new GrpcError('UNKNOWN', 'cni plugin not initialized');
  }
}
