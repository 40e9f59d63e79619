// Types that carry proof: a branded value can only be made by the function that checked it.

declare const brand: unique symbol;

/** `Brand<string, "EventId">` is a string that some parser has checked to be an event id. */
export type Brand<Value, Name extends string> = Value & { readonly [brand]: Name };
