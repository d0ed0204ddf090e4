import { resolve } from 'node:path';
import type { Section } from './fields.ts';
import type { Material } from './kubeconfig.ts';

/** The location of the kubeconfig. */
export interface KubeconfigLocation {
  readonly file: string;
  /** The directory against which relative paths are resolved. */
  readonly directory: string;
}

const base64 = /^[A-Za-z0-9+/\s]+(?:={1,2}\s*)?$/;

/** Reads the embedded value of a field, or else the path of its file. */
export function readMaterial(
  section: Section,
  name: string,
  location: KubeconfigLocation,
): Material | undefined {
  const inline = section.text(`${name}-data`);
  const path = section.text(name);
  if (inline !== undefined) return decode(section, `${name}-data`, { inline, location });
  if (path === undefined) return undefined;
  const full = resolve(location.directory, path);
  return { kind: 'file', name: full, path: full };
}

interface Inline {
  readonly inline: string;
  readonly location: KubeconfigLocation;
}

function decode(section: Section, field: string, { inline, location }: Inline): Material | undefined {
  const pem = base64.test(inline) ? Buffer.from(inline, 'base64').toString('latin1') : '';
  if (!pem.includes('-----BEGIN ')) return section.refuse(field, 'must be PEM text encoded as base64');
  return { kind: 'inline', name: `${field} of ${location.file}`, pem };
}
