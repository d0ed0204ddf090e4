/** The location of a manifest, which is part of the identity of its pod. */
export interface ManifestOrigin {
  readonly source: 'file' | 'http';
  /** The path of the manifest file, or the URL. */
  readonly path: string;
  readonly nodeName: string;
}
