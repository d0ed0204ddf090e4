import { KubelingError, type Random, randomInt } from '../../lib/index.ts';
import { canonicalIp, ipBytes, ipText } from '../../protocols/x509/index.ts';

/** The addresses services get. The first and the last of the range are given to nobody. */
export class ServiceRange {
  readonly text: string;
  readonly family: 'IPv4' | 'IPv6';
  readonly #first: bigint;
  readonly #size: bigint;

  constructor(text: string) {
    const [address = '', bits = ''] = text.split('/');
    const bytes = ipBytes(address);
    const width = (bytes?.length ?? 0) * 8;
    if (bytes === undefined || !/^\d{1,3}$/.test(bits) || Number(bits) > width - 2)
      throw new KubelingError(
        'CONFIG_INVALID',
        `Cannot give addresses to services as their range must be one such as 10.96.0.0/16: current value is ${JSON.stringify(text)}`,
      );
    this.text = text;
    this.family = width === 32 ? 'IPv4' : 'IPv6';
    this.#size = 1n << BigInt(width - Number(bits));
    this.#first = (numberOf(bytes) / this.#size) * this.#size;
  }

  has(address: string): boolean {
    const bytes = ipBytes(address);
    if (bytes === undefined || bytes.length !== this.#bytes) return false;
    const offset = numberOf(bytes) - this.#first;
    return offset > 0n && offset < this.#size - 1n;
  }

  /** One that is not used yet, wherever chance begins to look; undefined when all are. */
  free(used: ReadonlySet<string>, random: Random): string | undefined {
    const usable = Number(this.#size - 2n > mostLookedAt ? mostLookedAt : this.#size - 2n);
    const begin = randomInt(random, usable);
    for (let step = 0; step < usable; step++) {
      const address = this.#at(1n + BigInt((begin + step) % usable));
      if (!used.has(address)) return address;
    }
    return undefined;
  }

  get #bytes(): number {
    return this.family === 'IPv4' ? 4 : 16;
  }

  #at(offset: bigint): string {
    const hex = (this.#first + offset).toString(16).padStart(this.#bytes * 2, '0');
    return ipText(Buffer.from(hex, 'hex')) ?? '';
  }
}

/** Of a range that is larger only the beginning is used. */
const mostLookedAt = 65_534n;

/** An address as two may be compared; what is none stays as it is. */
export function comparable(address: string): string {
  return canonicalIp(address) ?? address;
}

function numberOf(bytes: Buffer): bigint {
  return BigInt(`0x${bytes.toString('hex')}`);
}
